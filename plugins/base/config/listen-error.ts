import type { Env } from '../../../schemas/env.ts'

/** Replaces an error of `listen` by a message that says what to change. */
export function explainListenError (error: unknown, { HOST: host, PORT: port }: Pick<Env, 'HOST' | 'PORT'>): unknown {
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'EADDRINUSE':
      return new Error(`Port ${port} on ${host} is in use already. Stop what uses it, or choose another with PORT.`)
    case 'EACCES':
      return new Error(`This user may not listen on port ${port}. Choose one above 1023 with PORT.`)
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new Error(
        `HOST cannot be ${JSON.stringify(host)}: it is not an address of this machine. ` +
        '127.0.0.1 is for this machine only, 0.0.0.0 for all networks.'
      )
    default:
      return error
  }
}
