// Package remote reads and writes objects in a store that is reached over a network: S3, Google
// Cloud Storage, Azure, or anything else that a Bucket is written for.
//
//	Bucket   what a store has to offer: stat, ranged reads, listing by page, writers
//	URL      s3://bucket/key?region=..., taken apart, and printed without its secrets
//
// The package itself speaks no protocol and needs the standard library only. Package
// remote/cloud opens URLs, and brings the SDKs of the clouds with it; package remote/mirror
// makes a dataset in a bucket a Source for training.
//
// # Errors
//
// Callers branch on the sentinels ErrNotFound, ErrPermission, ErrExists, ErrChanged
// and ErrUnavailable. An Error has the operation and the object. Its text never has user
// names, passwords, keys or signatures of URLs in it, whatever the SDK below said: see Redact.
package remote
