// Package external runs a user's functions on the records of a loader, in separate processes.
//
// A [Pool] is the processes. It hands each of them tasks, a few records at a time, over a stream socket, and shares
// memory with all of them in which records lie: no byte of a record goes over a socket. The messages are in
// docs/feed.md.
//
// A [Chain] is the loader.Transform of a field: steps of the engine, a function, more steps, and so on. Its records are
// in several tasks at a time, so that a goroutine of the loader works on some while processes work on others.
package external
