// Package write makes datasets, whatever container they end in. A [Stage] is the hidden folder in which a dataset is
// built and published. A [ShardWriter] appends records to shards and keeps their checksums, and a [ManifestBuilder]
// their statistics and identity. With a journal, all of it survives its process.
//
// Packages flat, hdf5 and zarr build their containers with these parts, and [NewWriter] gives a [Container] the rules
// of a [store.Writer].
package write
