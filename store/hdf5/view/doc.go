// Package view makes an HDF5 file of a few KB through which h5py and every other HDF5
// library read the records of a flat dataset where they are, in its .npy files: the datasets
// of the file have external storage. It needs no libhdf5.
//
// The file has what package store/hdf5 would write, without metadata: a dataset for each field at
// the root, or for a ragged field a group of values and offsets, and layout, class names and
// normalization as attributes. Bytes are the same for the same dataset.
//
// Names of the .npy files are relative. HDF5 takes them from the folder that the program works
// in. HDF5_EXTFILE_PREFIX=${ORIGIN} in the environment, or efile_prefix of an access property
// list, makes it take them from the folder of the HDF5 file.
//
// Format: HDF5 File Format Specification, version 3, with superblock 2, object headers 2 and
// compact links, which libhdf5 reads since 1.8.
package view
