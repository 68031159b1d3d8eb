// Package external runs a user's functions on the records of a loader, in separate worker
// processes.
//
// A [Pool] is the worker processes. It sends each of them tasks, a few records at a time, over a
// stream socket. The records lie in memory that all processes share, so no byte of a record goes
// over a socket. docs/feed.md specifies the messages.
//
// A [Chain] is the loader.Transform of a field: steps of the engine, a function, more steps, and so
// on. Its records are in several tasks at a time, so that a goroutine of the loader works on some
// records while worker processes work on others. A [Head] is what comes before the first function.
//
// An exception of a function is an error of its record. The end of a worker process, or a wrong
// message, breaks the Pool.
package external
