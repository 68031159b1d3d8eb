// Package feed has the command feed, which runs package loader in a process of its own and hands
// batches to a training process through memory that both map. Nothing is pickled, and batches of
// fixed size are not copied on their way. The protocol is specified in docs/feed.md; the client is
// Python's penstock.DataLoader.
//
//	transport   how the two processes share memory and messages: native (Linux) or portable
//	arena       the shared memory: a file that both processes map and that only grows
//	session     one client, from its hello to its end
//	subject     what a client asked for: datasets, order, filters, transforms of each field
//	desk        slots with the batches that the client holds, which limit how far feed runs ahead
//	positions   the fast way of a batch: numbers in the shared memory in place of messages
//	functions   Python functions in a pipeline, called in worker processes (package external)
//	records     --records: single records for penstock.open, over stdin and stdout
//
// A batch goes this way. The client's hello has Options. The subject opens the datasets and makes
// loader options; the loader fills buffers that are in the arena. For each batch, the session waits
// for a free slot, the desk notes where each field is (and copies fields of variable length, whose
// sizes are not known before), and the client is told by a message or by positions. When the client
// gives a slot back, the loader's buffer is free again. A start message seeks to another position
// at any time; the client drops earlier batches.
//
// The native transport passes the descriptor of an anonymous file (memfd) over a unix socket. With
// the portable transport, the client makes a temporary file and starts feed, which inherits it.
package feed
