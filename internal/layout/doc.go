// Package layout says where the bytes of a dataset are: columns made of extents, the index of ragged fields, and the
// checksums of blocks. It is what packages store, mmapds, remote/mirror and the commands share, and users of store do
// not need.
package layout
