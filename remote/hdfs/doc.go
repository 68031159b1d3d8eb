// Package hdfs reads and writes files of Hadoop's file system, hdfs://NAMENODE:8020/PATH, as objects of a Bucket.
//
// HADOOP_CONF_DIR names the directory with the addresses of a cluster's namenodes and the way to reach its datanodes;
// the user comes from the URL, from HADOOP_USER_NAME, or is the user of the process. Clusters that ask for Kerberos are
// not supported.
//
// A file is written under another name and renamed by its Commit. If a datanode fails, reads
// continue at another one, and a write starts again; from the third time on with one replica less
// each time, down to one, as the namenode may choose that datanode again: see
// [github.com/colinmarc/hdfs].
package hdfs
