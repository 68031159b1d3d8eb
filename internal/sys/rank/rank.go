// Package rank reads from the environment which of several processes this one is, as the launchers of clusters say it:
// torchrun, MPI, Slurm, Kubernetes, the batch services of clouds.
//
// [Training] answers for loaders, which each take their share of every epoch. [Work] answers for preprocess, whose
// processes each make a part of a dataset, and therefore also counts the members of job arrays. [Local] is how many
// processes share this machine, its memory and its cores. A rank that is out of range is an error: with a wrong rank,
// two processes would do one share and nobody the other.
package rank

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Process is one of Size processes that share some work.
type Process struct {
	Rank  int    // from 0
	Size  int    // 0: the environment says nothing
	Local int    // of those on this host; 0 if that is not known
	From  string // the variables that it was read from, with their values
}

// Lookup returns an environment variable, as os.LookupEnv.
type Lookup func(name string) (string, bool)

// launcher is where a launcher says who a process is: names of environment variables.
type launcher struct {
	rank, size string

	first string // variable with the rank of the first process, where that is not 0
	last  string // and of the last
}

var (
	array = launcher{rank: "SLURM_ARRAY_TASK_ID", size: "SLURM_ARRAY_TASK_COUNT", first: "SLURM_ARRAY_TASK_MIN",
		last: "SLURM_ARRAY_TASK_MAX"}
	jobs = []launcher{
		{rank: "JOB_COMPLETION_INDEX", size: "JOB_COMPLETIONS"},               // Kubernetes Indexed Job
		{rank: "AWS_BATCH_JOB_ARRAY_INDEX", size: "AWS_BATCH_JOB_ARRAY_SIZE"}, // AWS Batch array job
		{rank: "BATCH_TASK_INDEX", size: "BATCH_TASK_COUNT"},                  // Google Cloud Batch
		{rank: "CLOUD_RUN_TASK_INDEX", size: "CLOUD_RUN_TASK_COUNT"},          // Cloud Run job
	}
	ranks = []launcher{
		{rank: "RANK", size: "WORLD_SIZE"},                           // torchrun, Kubeflow PyTorchJob
		{rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE"}, // Open MPI
		{rank: "MV2_COMM_WORLD_RANK", size: "MV2_COMM_WORLD_SIZE"},   // MVAPICH
		{rank: "PMI_RANK", size: "PMI_SIZE"},                         // MPICH, Intel MPI
		{rank: "SLURM_PROCID", size: "SLURM_NTASKS"},                 // srun
	}
)

// Training returns who this process is among the processes that train together. For srun
// inside a job array it is the number that srun gives: the array's tasks are separate jobs.
//
// Without any launcher's variables the Process is the zero value. If only one variable of a
// pair is set, the error names both.
func Training(lookup Lookup) (Process, error) {
	p, err := find(lookup, append(append([]launcher(nil), ranks...), jobs...), 0)
	p.Local = min(Local(lookup), p.Size)
	return p, err
}

// locals are the variables with the number of processes on this host, the innermost launcher first.
var locals = []string{
	"LOCAL_WORLD_SIZE",           // torchrun
	"OMPI_COMM_WORLD_LOCAL_SIZE", // Open MPI
	"MV2_COMM_WORLD_LOCAL_SIZE",  // MVAPICH
	"MPI_LOCALNRANKS",            // MPICH, Intel MPI
	"PMI_LOCAL_SIZE",             // Cray
	"SLURM_STEP_TASKS_PER_NODE",  // srun
	"SLURM_NTASKS_PER_NODE",
}

// Local returns how many of the processes that train together are on this host; 0 if the environment does not say it.
func Local(lookup Lookup) int {
	for _, name := range locals {
		if text, ok := lookup(name); ok {
			if n := perNode(lookup, text); n > 0 {
				return n
			}
		}
	}
	return 0
}

// perNode returns the number of this node in a list such as 8, 8(x2) or 4(x3),2; the largest where the node is not
// known, and 0 if it is not such a list.
func perNode(lookup Lookup, text string) int {
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		count, times, several := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		n, err := strconv.Atoi(strings.TrimSpace(count))
		repeat := 1
		if several && err == nil {
			repeat, err = strconv.Atoi(times)
		}
		if err != nil || n < 1 || repeat < 1 || repeat > maxNodes {
			return 0
		}
		all = append(all, slices.Repeat([]int{n}, repeat)...)
	}
	if id, ok := lookup("SLURM_NODEID"); ok {
		if node, err := strconv.Atoi(id); err == nil && node >= 0 && node < len(all) {
			return all[node]
		}
	}
	return slices.Max(all)
}

// maxNodes is more than any cluster has.
const maxNodes = 1 << 20

// Work returns who this process is among the processes that divide some work, without exchanging data. The number in a
// job array counts more than the number of a process inside a member of the array. A size that is not 0 is taken where
// the launcher reports the rank alone, as Kubernetes does; where the launcher reports both, size must be the
// launcher's size.
func Work(lookup Lookup, size int) (Process, error) {
	return find(lookup, append(append([]launcher{array}, jobs...), ranks...), size)
}

// find returns the process by the first launcher that set a variable. A launcher that set one of its two variables is
// an error and not skipped: otherwise a later launcher could give every process rank 0.
func find(lookup Lookup, launchers []launcher, size int) (Process, error) {
	for _, l := range launchers {
		rank, hasRank := lookup(l.rank)
		total, hasSize := lookup(l.size)
		if hasRank && !hasSize && size > 0 {
			total, hasSize = strconv.Itoa(size), true
		}
		switch {
		case hasRank && hasSize:
			p, err := l.parse(lookup, rank, total)
			if err == nil && size > 0 && p.Size != size {
				err = fmt.Errorf("environment: %s=%s, and not %d", l.size, total, size)
			}
			return p, err
		// Slurm sets the number for a batch script, too, which is not a task
		case hasRank || hasSize && l.rank != "SLURM_PROCID":
			return Process{}, l.half(hasRank)
		}
	}
	return Process{}, nil
}

func (l launcher) half(hasRank bool) error {
	set, missing := l.rank, l.size
	if !hasRank {
		set, missing = missing, set
	}
	return fmt.Errorf("environment: %s is set, but not %s; set both", set, missing)
}

// parse reads rank and size. Job arrays may begin at any number, which is subtracted; an array with gaps is refused, as
// the parts of the missing tasks would be built by nobody.
func (l launcher) parse(lookup Lookup, rank, size string) (Process, error) {
	var errs []error
	number := func(name, text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("environment: %s=%q is not a number", name, text))
		}
		return n
	}
	p := Process{Rank: number(l.rank, rank), Size: number(l.size, size), From: l.rank + "=" + rank + " " + l.size +
		"=" + size}
	if l.first != "" {
		first, last := l.limit(lookup, l.first, 0, number), l.limit(lookup, l.last, -1, number)
		p.Rank -= first
		if last >= 0 && last-first+1 != p.Size {
			errs = append(errs, fmt.Errorf("environment: %s=%d, %s=%d, but %s=%s: an array with gaps or steps does not say "+
				"which part a task is; use one such as --array=0-%d",
				l.first, first, l.last, last, l.size, size, p.Size-1))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Process{}, err
	}
	if p.Size < 1 || p.Rank < 0 || p.Rank >= p.Size {
		return Process{}, fmt.Errorf("environment: %s=%d, %s=%d: a rank is from 0 to size-1", l.rank, p.Rank, l.size, p.Size)
	}
	return p, nil
}

// limit returns the first or last number of an array, or a substitute if it is not set.
func (l launcher) limit(lookup Lookup, name string, none int, number func(name, text string) int) int {
	text, ok := lookup(name)
	if !ok {
		return none
	}
	return number(name, text)
}
