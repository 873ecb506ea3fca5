import '../contract/generated.test.js';
import '../contract/tenancy.test.js';
