package loader

// Order says in which order the records of an epoch come: Sequential, Shuffle and RunShuffle;
// Subset and Split of another; Weighted, Mix, Buckets and Regions; or one of the program's own.
//
// An Order may have these methods besides, as those of this package do where they need them:
//
//	ID() string            State holds it, not just the name of the type, so that Resume refuses other parameters
//	Validate(n int) error  New asks it whether the Order suits a Source of n records
//	Repeats() bool         whether an epoch may have a record more than once: each then has a random stream of its own
type Order interface {
	// Epoch returns the order of one epoch over a Source of n records. It must be a pure
	// function of its arguments, and should take neither time nor memory that grows with n.
	Epoch(n int, seed uint64, epoch int) Sequence
}

// repeats reports whether an epoch of o may have a record more than once.
func repeats(o Order) bool {
	r, ok := o.(interface{ Repeats() bool })
	return ok && r.Repeats()
}

// Sequence is the order of one epoch. Several goroutines use it at once.
type Sequence interface {
	// Len returns the number of positions of the epoch. It may be another number than the
	// Source has records.
	Len() int

	// Fill sets dst[i] to the number of the record at position pos+i. It is asked for any
	// stretch of [0, Len), in any order and repeatedly, and must not allocate.
	Fill(pos int, dst []int)
}

// runner is what a Sequence implements that may know, without listing them, that the records at n
// positions from pos on follow each other in the Source, and then which one is the first.
type runner interface {
	runAt(pos, n int) (first int, ok bool)
}

// Sequential visits the records in the order of the dataset. Batches are views.
type Sequential struct{}

// Epoch returns 0, 1, ..., n-1 for every seed and epoch.
func (Sequential) Epoch(n int, _ uint64, _ int) Sequence { return sequential(n) }

type sequential int

func (s sequential) Len() int { return int(s) }

func (s sequential) Fill(pos int, dst []int) {
	for i := range dst {
		dst[i] = pos + i
	}
}

func (s sequential) runAt(pos, _ int) (first int, ok bool) { return pos, true }

// Shuffle visits every record exactly once, in an order that looks random and is another
// for every seed and epoch: (0, 1) and (1, 0) are not related. It computes each position
// when it is asked for it, so that setting up an epoch costs some microseconds and 8 KiB at
// most, however many records there are.
type Shuffle struct{}

// Epoch returns the permutation that belongs to (n, seed, epoch). It is the same on every
// machine, and with every version of this package.
func (o Shuffle) Epoch(n int, seed uint64, epoch int) Sequence {
	return o.permutation(n, seed, epoch)
}

// permutation is a Sequence that can be asked for single positions.
type permutation interface {
	Sequence
	each(positions []int)
}

func (Shuffle) permutation(n int, seed uint64, epoch int) permutation {
	if n <= maxTable {
		return newTable(n, seed, epoch)
	}
	return newBijection(n, seed, epoch)
}
