// Package hdfs reads and writes files of Hadoop's file system, hdfs://NAMENODE:8020/PATH, as objects of a Bucket.
//
// Where the namenodes of a cluster are, and how its datanodes are reached, is in the folder HADOOP_CONF_DIR; the user
// is that of the URL, of HADOOP_USER_NAME, or of the process. Clusters that ask for Kerberos are not supported.
//
// A file is written under another name and renamed by its Commit. Reads go on at another datanode when one fails. A
// write that a datanode has failed begins anew; from the third time on with a replica less each time, down to one, as
// the namenode may send it to that datanode again: see [github.com/colinmarc/hdfs].
package hdfs
