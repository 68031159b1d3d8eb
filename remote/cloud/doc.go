// Package cloud opens buckets by their URLs: s3://, gs://, azblob:// and file:// with
// gocloud.dev/blob, hdfs:// with package hdfs, and https://, http:// and hf:// with package web.
// Credentials come from where the users of each cloud keep them, and options of a URL are the
// options that gocloud.dev documents:
//
//	s3://lab/train?region=eu-west-1
//	s3://lab/train?endpoint=https://minio:9000&use_path_style=true&region=us-east-1
//	gs://lab/train
//	azblob://container/train?storage_account=lab
//	hdfs://namenode:8020/user/me/train
//	https://host/train
//	hf://datasets/owner/name@main/train
//	file:///data/train
//
// It is the only package of the module that imports the SDKs of the clouds. A program that does not
// import it is built without them, and so is a program with -tags nocloud, which opens https://,
// http:// and hf:// only.
//
// What the package adds to gocloud.dev: reads that fail if the object was replaced (pin.go), a
// connection for each parallel read of S3 and Google, and errors that say which credentials were
// used and what to do (errors.go, used.go).
package cloud
