//go:build !linux

package main

import "fmt"

// cold needs the page cache to be emptied of a file, which other systems do not offer.
func (b *bench) cold() error {
	fmt.Print("cold: not measured, as only Linux lets a program drop a file from the page cache\n\n")
	return nil
}
