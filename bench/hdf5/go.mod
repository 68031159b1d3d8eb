module github.com/penstock/penstock/bench/hdf5

go 1.26.4

require (
	github.com/penstock/penstock v0.0.0
	gonum.org/v1/hdf5 v0.0.0-20210714002203-8c5d23bc6946
)

require (
	github.com/edsrzf/mmap-go v1.2.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/penstock/penstock => ../..
