// Package s3test runs package remote and its subpackages against a real S3 server, versitygw,
// which keeps objects as plain files, and through toxiproxy, which shapes the link between. It
// is a module of its own, so that neither is one of penstock's.
package s3test
