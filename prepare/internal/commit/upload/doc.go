// Package upload writes datasets to a bucket. A [Destination] is the URL that a build ends at; files of the dataset
// are made in a local folder and sent from there, because object stores neither append nor rename.
//
// An [Uploader] sends the shards of a flat dataset while later shards are built, so that the disk holds only open
// shards and shards that wait for the link. In the place of a file that was sent, a marker is left: a sparse file
// of the same name and length that says where the object is and what its checksum was. A build that is continued
// after a crash finds markers, makes sure that the objects are still there, and sends only the rest. Files whose
// final names are not known before the end (of later splits) are sent under temporary names and copied within the
// bucket.
//
// # Invariants
//
//   - The object that makes a dataset complete (the manifest of a flat one) is written last, and removed first when
//     a dataset is overwritten: a reader of the bucket sees the old dataset, none, or the new one.
//   - The checksum in a marker is of the bytes that were read while they were sent, not of the file before or
//     after.
//   - If an object that a marker names is missing, the build fails with [ErrLost] instead of making another
//     dataset.
package upload
