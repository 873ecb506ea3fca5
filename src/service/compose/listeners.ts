import { isIPv6 } from 'node:net';
import { defined } from '../../core/domain/defined.js';
import type { IssuingState } from '../../core/domain/validity.js';
import type { TlsFiles } from '../adapters/system/tls-files.js';
import type { Config } from '../config/config.js';
import type { ByteBudget } from '../http/byte-budget.js';
import { createOperatorListener } from '../http/operator-listener.js';
import { createPartnerListener } from '../http/partner-listener.js';
import type { Listener } from '../http/server/listener.js';
import { createTestAnswers } from '../http/server/test-answers.js';
import type { Operations } from '../operations/operations.js';
import type { Ids } from '../ports/system.js';
import type { Probes } from '../telemetry/probes.js';
import type { Telemetry } from '../telemetry/telemetry.js';
import type { Disposer } from './disposer.js';

interface Bound {
  readonly port: number;
  readonly host: string;
}

/** Returns `host:port` as an address needs it, with brackets for IPv6. */
export function hostPort({ host, port }: Bound): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The settings of a listener's address. */
const ADDRESS_SETTINGS = {
  PARTNER: { host: 'TAKEMARK_HOST', port: 'TAKEMARK_PORT' },
  OPERATOR: { host: 'TAKEMARK_OPERATOR_HOST', port: 'TAKEMARK_OPERATOR_PORT' },
} as const;

/**
 * Binds a listener.
 * @throws Error that names the setting to change if the address cannot be used
 */
export async function bind(
  listener: Listener,
  name: keyof typeof ADDRESS_SETTINGS,
  address: Bound,
): Promise<Bound> {
  const setting = ADDRESS_SETTINGS[name];
  try {
    return await listener.listen(address.port, address.host);
  } catch (cause) {
    const message = bindMessage((cause as NodeJS.ErrnoException).code, setting, address);
    throw message === undefined ? cause : new Error(message, { cause });
  }
}

function bindMessage(
  code: string | undefined,
  setting: { readonly host: string; readonly port: string },
  { host, port }: Bound,
): string | undefined {
  if (code === 'EADDRINUSE')
    return `${setting.port}: another program listens on port ${port}. Stop it, or set another port`;
  if (code === 'EACCES') return `${setting.port}: this user may not listen on port ${port}`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `${setting.host}: this machine has no address ${host}`;
  return undefined;
}

export interface Listeners {
  readonly partner: Bound;
  readonly operator: Bound;
  readonly all: readonly Listener[];
  /**
   * Loads the certificate again if the files changed, or in any case with `always`. Undefined without TLS.
   */
  readonly renewTls: ((always: boolean) => Promise<void>) | undefined;
}

export interface ListenerParts {
  readonly config: Config;
  /** Returns the remaining milliseconds for requests in flight at a stop. */
  readonly graceMs: () => number;
  readonly ids: Ids;
  readonly telemetry: Telemetry;
  /** The budget of the process for bytes that it holds for callers. */
  readonly budget: ByteBudget;
  readonly operations: Operations;
  /** The accepted operator tokens. */
  readonly tokens: readonly [string, ...string[]];
  readonly probes: Probes;
  /** Returns the dependencies that do not answer, while the process stays ready. */
  readonly missing: () => readonly string[];
  /** Returns whether the service can issue proofs now. */
  readonly issuing: () => Promise<IssuingState>;
  /** Throws while the registry is being restored. */
  readonly assertOpen: () => void;
  readonly tls: TlsFiles | undefined;
  readonly build: Parameters<typeof createPartnerListener>[0]['build'];
  readonly isBusy: (() => boolean) | undefined;
}

/** Binds the operator listener and then the partner listener. SIGHUP reloads the certificate. */
export async function openListeners(
  {
    config,
    graceMs,
    ids,
    telemetry,
    budget,
    operations,
    tokens,
    probes,
    missing,
    issuing,
    assertOpen,
    tls,
    build,
    isBusy,
  }: ListenerParts,
  disposer: Disposer,
): Promise<Listeners> {
  const { observer, requestLog } = telemetry;
  const common = {
    ids,
    requestLog,
    observer,
    assertOpen,
    limits: { connections: config.maxConnections, largeBytes: config.largeBytes },
    trustedProxies: config.trustedProxies,
    budget,
    ...defined({ requestIdHeader: config.requestIdHeader }),
  };
  const partnerListener = createPartnerListener({
    ...common,
    operations: operations.partner,
    build,
    ...defined({
      tls: tls?.identity,
      isBusy,
      // Rule 19.1.
      testAnswers: config.environment === 'beta' ? createTestAnswers() : undefined,
    }),
  });
  const operatorListener = createOperatorListener({
    ...common,
    operations: operations.operator,
    tokens,
    namedTokens: config.operator.namedTokens,
    metrics: telemetry.metrics,
    ready: async () => {
      await probes.ready();
      const names = missing();
      return { ...(names.length === 0 ? {} : { missing: [...names] }), issuing: await issuing() };
    },
    host: config.operator.host,
    names: config.operator.names,
  });
  const operator = await bind(operatorListener, 'OPERATOR', config.operator);
  disposer.add(() => operatorListener.close(graceMs()));
  const partner = await bind(partnerListener, 'PARTNER', config.partner);
  disposer.add(() => partnerListener.close(graceMs()));
  const all = [operatorListener, partnerListener];
  if (tls === undefined) return { partner, operator, all, renewTls: undefined };

  const renewTls = async (always: boolean): Promise<void> => {
    const identity = await tls.renew({ always });
    if (identity === undefined) return;
    partnerListener.renewTls(identity);
    telemetry.note('tls_renewed', { expiresAt: identity.expiresAt });
  };
  const onHangup = (): void => void renewTls(true).catch((error: unknown) => observer.fault('tls', error));
  process.on('SIGHUP', onHangup);
  disposer.add(async () => process.off('SIGHUP', onHangup));
  return { partner, operator, all, renewTls };
}
