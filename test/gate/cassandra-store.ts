import '../adapters/cassandra-session.test.js';
import '../adapters/review-listing.test.js';
import '../adapters/cassandra-schema.test.js';
import '../adapters/cassandra.test.js';
import '../adapters/doctor.test.js';
import '../adapters/cassandra-driver-faults.test.js';
import '../adapters/clock-watch.test.js';
import '../lab/tombstones/tombstones.test.js';
