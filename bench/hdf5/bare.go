package main

// bytesReader copies records out of a slice with the bytes of all records, with
// a plain loop.
type bytesReader struct {
	*mappedReader
	all []byte
}

func openBytes(path string, batch int) (reader, error) {
	m, err := openMapped(path, batch)
	if err != nil {
		return nil, err
	}
	v, err := m.d.Slice("x", 0, m.d.Len())
	return &bytesReader{m, v.Bytes()}, err
}

func (r *bytesReader) read(order []int) error {
	size := len(r.buf) / r.batch
	for k, i := range order {
		copy(r.buf[k%r.batch*size:][:size], r.all[i*size:])
	}
	return nil
}
