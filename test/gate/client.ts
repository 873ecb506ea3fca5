import '../client/api-types.test.js';
import '../client/client.test.js';
import '../client/endpoints.test.js';
import '../client/hooks.test.js';
import '../client/plain-http.test.js';
import '../client/python-package.test.js';
import '../lab/clients/clients.test.js';
