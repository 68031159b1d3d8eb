module github.com/penstock/penstock/python/tests

go 1.26.4

require github.com/penstock/penstock v0.0.0

require (
	github.com/disintegration/imaging v1.6.2 // indirect
	github.com/edsrzf/mmap-go v1.2.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	golang.org/x/image v0.47.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	gonum.org/v1/hdf5 v0.0.0-20210714002203-8c5d23bc6946 // indirect
)

replace github.com/penstock/penstock => ../..
