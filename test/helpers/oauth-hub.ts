import { startUpstream, tool, type Upstream } from '../fakes/fault-http.ts'
import { connected, settings } from './client.ts'
import { startHub, type Cleanup, type Hub } from './hub.ts'
import type { Person } from './oauth.ts'

export const admin: Person = { username: 'admin', password: 'Correct-Horse-1' }

/** A gateway with the authorization server, and an upstream `fake` behind it: `echo`, and `greet`, which has no arguments. */
export async function startWithOAuth (t: Cleanup, env: Record<string, string> = {}): Promise<Hub & { upstream: Upstream }> {
  const upstream = await startUpstream(t, { tools: [tool('echo'), tool('greet')] })
  const hub = await startHub(t, {
    settings: settings({ fake: { type: 'streamable-http', url: upstream.url } }, { systemConfig: { oauthServer: { enabled: true } } }),
    env: { ADMIN_PASSWORD: admin.password, ...env }
  })
  await connected(hub, 1)
  return { ...hub, upstream }
}
