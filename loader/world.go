package loader

import (
	"fmt"
	"os"

	"github.com/penstock/penstock/internal/rank"
)

// World says which of several training processes this one is. Each takes its contiguous
// slice of the global batch, BatchSize*Size records, so that what a step trains on is the
// same for any Size with the same global batch. The zero value is a process by itself.
type World struct {
	Rank      int // of this process, from 0
	Size      int // processes that train together; 0 means 1
	LocalSize int // of those on this host, who share its cores; 0 means 1
}

// WorldFromEnv returns the World that the launcher of this process put into the
// environment: torchrun, Kubeflow, Open MPI, MVAPICH, MPICH, Intel MPI, srun, a Kubernetes
// Indexed Job, an array of AWS Batch, Google Cloud Batch or Cloud Run. Without any of their
// variables it is the zero World. One of a pair without the other is an error, as guessing
// would have every process train on the same data.
//
// Kubernetes tells a pod its index but not the number of completions: the Job's template
// must pass that as JOB_COMPLETIONS.
func WorldFromEnv() (World, error) {
	p, err := rank.Training(os.LookupEnv)
	if err != nil {
		return World{}, fmt.Errorf("loader: %w; a World that is given by hand needs no environment", err)
	}
	return World{Rank: p.Rank, Size: p.Size, LocalSize: p.Local}, nil
}
