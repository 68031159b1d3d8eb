// Package s3test runs package remote and its subpackages against a real S3 server, versitygw,
// which keeps objects as plain files, and through toxiproxy, which shapes the link between
// both. It is a module of its own, so that penstock's module does not depend on either
// program.
package s3test
