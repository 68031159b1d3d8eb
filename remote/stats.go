package remote

// Stats counts the requests to a store.
type Stats struct {
	Requests int64 // all attempts
	Retries  int64 // attempts after one that failed
	Failures int64 // requests that were given up
	Bytes    int64 // bytes that reads received
}
