// Package layout says where the bytes of a dataset are: columns that consist of extents, the index
// of ragged fields, and the checksums of blocks. Packages store, mmapds, remote/mirror and the
// commands share it; users of store do not need it.
package layout
