package remote

// Stats says what was asked of a store.
type Stats struct {
	Requests int64 // all attempts
	Retries  int64 // attempts after one that failed
	Failures int64 // requests that were given up
	Bytes    int64 // that arrived, of reads
}
