import '../adapters/asset-parts.test.js';
import '../adapters/asset-bucket.test.js';
import '../adapters/bucket-notes.test.js';
import '../adapters/content-keys.test.js';
