//go:build !unix

package private

import "io/fs"

// Such systems have access lists that a folder inherits, not modes; links need a privilege to make.
const (
	noFollow = 0
	nonBlock = 0
	modes    = false
)

func owned(fs.FileInfo) bool { return true }

func sameOwner(a, b fs.FileInfo) bool { return true }

func userName() string { return "penstock" } // temporary files are in a folder of the user's own

// HideNew has nothing to do: what is made has the access list of its folder.
func HideNew() {}
