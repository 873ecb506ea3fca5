import '../adapters/kafka-lost-brokers.test.js';
