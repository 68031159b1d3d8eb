// Package cloud opens buckets by their URLs: s3://, gs://, azblob:// and file:// with
// gocloud.dev/blob, hdfs:// with package hdfs, and https://, http:// and hf:// with package web. Credentials come from
// where the users of each cloud keep them, and the options of a URL are those that gocloud.dev documents:
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
// It is the only package of the module that imports the SDKs of the clouds; a program that
// does not import it does not have them, nor does one built with -tags nocloud, which opens https://, http:// and
// hf:// alone.
package cloud
