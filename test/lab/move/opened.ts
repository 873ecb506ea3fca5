import { systemClock } from '../../../src/service/adapters/system/system.js';
import { Disposer } from '../../../src/service/compose/disposer.js';
import { openSecrets } from '../../../src/service/compose/identity.js';
import { type Infrastructure, openInfrastructure } from '../../../src/service/compose/infrastructure.js';
import { readConfig } from '../../../src/service/config/config.js';

/** Opens the stores of an installation, as a command of the operator does, and closes them after the work. */
export async function withInfrastructure<Result>(
  settings: Readonly<Record<string, string>>,
  work: (infrastructure: Infrastructure, disposer: Disposer) => Promise<Result>,
): Promise<Result> {
  const config = readConfig({ ...settings, TAKEMARK_LOG_LEVEL: 'silent' });
  const disposer = new Disposer();
  try {
    const secrets = { ...(await openSecrets(config)), complete: undefined };
    const infrastructure = await openInfrastructure(
      { config, clock: systemClock, secrets, admits: false },
      disposer,
    );
    return await work(infrastructure, disposer);
  } finally {
    await disposer.dispose();
  }
}
