// Package web reads files of web servers, https://HOST/PATH, and of datasets of the Hugging Face
// Hub, hf://datasets/NAME@REV/PATH, as objects of a read-only Bucket.
//
//	bucket  a remote.Bucket over a place; it sends range requests and checks the answers
//	server  the place of a web server
//	hub     the place of a dataset on the Hub, at one commit
//	site    the HTTP client, which remembers where objects were redirected to
//
// A server must answer range requests, and say how many bytes a file has. It lists no folders: a
// dataset is found by its manifest. Versions are told apart by the ETag, otherwise by Last-Modified
// and size. The login of a host is in the URL or in ~/.netrc. Logins and the token of the Hub are
// sent to no other host, whatever a response says.
//
// The package needs the standard library only.
package web
