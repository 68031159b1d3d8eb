package store

import "github.com/penstock/penstock/tensor"

// Header returns the HeaderBytes bytes that an .npy file of a dataset with n rows of spec
// begins with. OpenFlat takes no others, so a manifest determines all headers.
func Header(spec tensor.Spec, n int64) []byte { return npyHeader(spec, n) }

// SumsHeader returns the header of a file with so many checksums.
func SumsHeader(blocks int64) []byte { return npyHeader(checksumSpec, blocks) }
