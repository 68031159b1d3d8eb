// Package loadbench is the command loadbench: the benchmark tables of two public guides to
// data loading, on the user's own dataset and machine.
//
// A table is a list of setups, which differ in one thing each. Every setup is measured in
// the same way: a consumer asks for a batch, reads every cache line of it, computes for as
// long as a training step takes (or not at all), and asks for the next. Its waits are
// measured on the consumer's side of the loader, batch by batch. A setup that cannot run here,
// for want of a device or of memory, says why and has no number.
package loadbench
