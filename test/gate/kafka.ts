import '../adapters/kafka.test.js';
import '../adapters/kafka-outgoing.test.js';
import '../adapters/kafka-stored.test.js';
import '../adapters/kafka-unread.test.js';
import '../adapters/topic-consumer.test.js';
