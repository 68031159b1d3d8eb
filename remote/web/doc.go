// Package web reads files of web servers, https://HOST/PATH, and of datasets of Hugging Face's Hub,
// hf://datasets/NAME@REV/PATH, as objects of a Bucket. Both are read-only.
//
// A server has to answer requests for ranges, and to say how many bytes a file has. It lists no folders: a
// dataset is found by its manifest. Versions differ in ETag, else by Last-Modified and size. The login of
// a host is in the URL, or in ~/.netrc; it and the token of the Hub go to no other host, whatever an answer
// says.
//
// The package needs the standard library only.
package web
