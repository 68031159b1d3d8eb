// Package write makes datasets, whatever container they end in. It syncs, renames and deletes the files of a dataset; the
// containers say what the files hold. A [Stage] is the hidden folder in which a dataset is built and published. A
// [ShardWriter] appends records to shards and keeps their checksums, and a [ManifestBuilder] their statistics and
// identity. With a journal, all of it survives its process: what a journal says is complete was synced before. [Editing]
// is a new generation of a dataset that exists, and [Prune] removes what no kept generation needs.
//
// A dataset becomes visible by one rename, of its folder or of its manifest, after everything that it names is on the disk. A
// process that is killed leaves a hidden folder, which the next writer takes over or removes under the lock of the dataset.
//
// Packages flat, hdf5 and zarr build their containers with these parts, and [NewWriter] gives a [Container] the rules
// of a [store.Writer].
package write
