//go:build !unix

package vfs

import "os"

const openFile, openFolder = os.O_RDONLY, os.O_RDONLY
