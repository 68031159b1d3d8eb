package usage

import "time"

// Process returns how long the threads of this process have run on cores, all together; 0 where
// the system does not report.
func Process() time.Duration { return ownProcess() }

// Machine returns how long the machine's cores have been busy with the programs of all users,
// steal included, and how many cores there are; 0 where the system does not report.
func Machine() (busy time.Duration, cores int) { return ownMachine() }

// StorageRead returns how many bytes this process had read from storage, by reads, faults and
// read-ahead; 0 where the system does not report.
func StorageRead() int64 { return storageRead() }

var began = time.Now()

// Clock is Process for measurements: if that is not known, it is the time since the program
// began, and measuring needs a quiet machine.
func Clock() time.Duration {
	if t := ownProcess(); t > 0 {
		return t
	}
	return time.Since(began)
}
