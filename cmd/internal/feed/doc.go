// Package feed is the command feed: package loader in a separate process, which hands
// batches to a training process through memory that both map.
//
// The memory is one file without a name, which is gone when both processes are. How they share it is a [transport]: on
// Linux feed makes an anonymous file (memfd) and passes its descriptor over a unix socket; on all systems a client can
// make a file in its temporary folder and start feed, which inherits it. Over the socket go small messages: which slot
// holds the next batch and where its fields are, and which slots are free again. Nothing is pickled, and no byte of a
// batch is copied on its way. The protocol is in docs/feed.md; the client is Python's penstock.DataLoader.
//
// A client says first what it wants (Options: datasets' fields, sampler, transforms, batches), and
// then where batches are to begin; it may start over at any time.
//
// A session serves one client. Its loader writes batches straight to the shared memory; a
// dataset that has fields of variable length is copied there once, as the length of its
// batches is not known beforehand. A client that has as many batches as it asked for gets
// the next one when it gives one back.
package feed
