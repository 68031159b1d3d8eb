// Package loadbench has the command loadbench: the benchmark tables of two public guides to data
// loading, on the user's own dataset and machine. The guides are PyTorch's tutorial "Data Loading
// Optimization" (progressive.go) and a configuration guide for training on cloud data (guide.go);
// sweep.go varies one parameter at a time.
//
//	subject  the data: records that are yet to be prepared, and prepared ones
//	setup    a row of a table: a source, loader options, and how much to measure
//	meter    measures a setup, batch by batch
//	Machine  what this machine can do, measured in the same run
//	Report   the tables, the bottleneck and the fastest setting
//
// A table is a list of setups, which differ in one thing each. Every setup is measured in the same
// way: a consumer asks for a batch, reads every cache line of it, computes for as long as a
// training step takes (or not at all), and asks for the next. Its waits are measured on the
// consumer's side of the loader. A setup that cannot run here, because a device or memory is
// missing, says why and has no number.
package loadbench
