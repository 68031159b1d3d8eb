package loader

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

// World says which of several training processes this one is. Each takes its contiguous
// slice of the global batch, BatchSize*Size records, so that what a step trains on is the
// same for any Size with the same global batch. The zero value is a process by itself.
type World struct {
	Rank      int // of this process, from 0
	Size      int // processes that train together; 0 means 1
	LocalSize int // of those on this host, who share its cores; 0 means 1
}

// ranking is where a launcher says who a process is: names of environment variables.
type ranking struct{ rank, size, local string }

// rankings of the launchers, the most specific first: srun inside a job array sets its own
// besides those of the array, which are for preprocessing. A local size is optional.
var rankings = []ranking{
	{"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},                                     // torchrun, Kubeflow PyTorchJob
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, // Open MPI
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"},    // MVAPICH
	{"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},                                    // MPICH, Intel MPI
	{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE"},                      // srun
	{"JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", ""},                                // Kubernetes Indexed Job
	{"AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE", ""},                  // AWS Batch array job
	{"BATCH_TASK_INDEX", "BATCH_TASK_COUNT", ""},                                   // Google Cloud Batch
	{"CLOUD_RUN_TASK_INDEX", "CLOUD_RUN_TASK_COUNT", ""},                           // Cloud Run job
}

// WorldFromEnv returns the World that the launcher of this process put into the
// environment: torchrun, Kubeflow, Open MPI, MVAPICH, MPICH, Intel MPI, srun, a Kubernetes
// Indexed Job, an array of AWS Batch, Google Cloud Batch or Cloud Run. Without any of their
// variables it is the zero World. One of a pair without the other is an error, as guessing
// would have every process train on the same data.
//
// Kubernetes tells a pod its index but not the number of completions: the Job's template
// must pass that as JOB_COMPLETIONS.
func WorldFromEnv() (World, error) { return worldFrom(os.LookupEnv) }

func worldFrom(lookup func(string) (string, bool)) (World, error) {
	for _, r := range rankings {
		rank, hasRank := lookup(r.rank)
		size, hasSize := lookup(r.size)
		switch {
		case hasRank && hasSize:
			local, _ := lookup(r.local)
			return r.parse(rank, size, local)
		case hasRank || r.sizeAlone(hasSize):
			return World{}, r.half(hasRank)
		}
	}
	return World{}, nil
}

// sizeAlone reports whether a size without a rank is a mistake: Slurm sets the number of
// tasks for a batch script, too, which is no task.
func (r ranking) sizeAlone(has bool) bool { return has && r.rank != "SLURM_PROCID" }

func (r ranking) half(hasRank bool) error {
	set, missing := r.rank, r.size
	if !hasRank {
		set, missing = missing, set
	}
	return fmt.Errorf("loader: environment: %s is set, but not %s; set both, or give Options.World", set, missing)
}

func (r ranking) parse(rank, size, local string) (World, error) {
	var w World
	var errs []error
	number := func(name, text string, to *int) {
		var err error
		if *to, err = strconv.Atoi(text); err != nil {
			errs = append(errs, fmt.Errorf("loader: environment: %s=%q is no number", name, text))
		}
	}
	number(r.rank, rank, &w.Rank)
	number(r.size, size, &w.Size)
	if n, err := strconv.Atoi(local); err == nil && n > 0 { // srun writes "2(x3)" for several nodes
		w.LocalSize = n
	}
	if err := errors.Join(errs...); err != nil {
		return World{}, err
	}
	if w.Size < 1 || w.Rank < 0 || w.Rank >= w.Size {
		return World{}, fmt.Errorf("loader: environment: %s=%d, %s=%d: a rank is from 0 to size-1", r.rank, w.Rank, r.size, w.Size)
	}
	return w, nil
}
