// Package bottleneck names what Diagnose of a loader can find to limit a training loop. A [Kind] is the finding, as
// data that programs can compare. [Names] words the advice: a Go program is told to set Options.Workers, and a Python
// program num_workers.
package bottleneck

// Kind names the limit on the speed of training.
type Kind string

// Those that Diagnose distinguishes.
const (
	TooEarly       Kind = "too early to say"
	TrainBound     Kind = "train-bound"
	OtherPrograms  Kind = "other programs"
	TransformBound Kind = "transform-bound"
	TransformWaits Kind = "transforms wait"
	RemoteBound    Kind = "remote-bound"
	ColdStorage    Kind = "cold storage"
	ReadsWait      Kind = "reads wait"
	DecodeBound    Kind = "decode-bound"
	OrderBound     Kind = "order-bound"
	CopyBound      Kind = "copy-bound"
	Straggler      Kind = "a straggler"
	TooFewWorkers  Kind = "too few workers"
	TinyBatches    Kind = "tiny batches"
	Bursts         Kind = "bursts"
)
