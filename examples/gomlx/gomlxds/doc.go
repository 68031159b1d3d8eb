// Package gomlxds feeds GoMLX: a Dataset is a train.Dataset whose batches penstock's loader
// writes straight into tensors. Each record is copied once, from the mapped file to the
// memory that the backend computes on, and transformed on its way if Options.Transforms of
// the loader say so.
//
//	ds, err := mmapds.Open("data/train")
//	...
//	train, err := gomlxds.New(ds, loader.Options{
//		BatchSize: 64, Order: sampler.Shuffle{}, Seed: 42, DropLast: true,
//	}, gomlxds.Config{
//		Backend: backend, Inputs: []string{"images"}, Labels: []string{"labels"}, Endless: true,
//	})
//	...
//	defer train.Close()
//	_, err = train.NewLoop(trainer).RunSteps(train, 10_000)
//
// It prefetches batches on its own, so it needs no dataset.Buffer around it; with one, State would
// count batches that no step has received.
//
// # Position
//
// A Dataset knows which batch comes next. Iter continues there: to the end of the epoch,
// so that the next Iter is the next epoch, or without end if Config.Endless. State is that
// position, to be kept with a checkpoint, and Resume continues there.
//
// # Shapes
//
// A batch is always as large as BatchSize, as GoMLX compiles the model again for every other shape.
// Either Options.DropLast leaves out a last batch that is not full, or it is filled up with zeros
// and Config.Mask marks the real records. The value of a field whose records are scalars has the
// shape (BatchSize, 1), as GoMLX's losses and metrics expect of labels.
package gomlxds
