//go:build !libjpeg || !cgo

package main

// bare is nil: libjpeg-turbo is not built in.
var bare way
