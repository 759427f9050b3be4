import type { Step } from '../chain.ts'

/** Everybody is the guest admin on the management API where `routing.skipAuth` says so; MCP is not opened by it. */
export const guest: Step = (_credentials, routes, { system }) => routes === 'api' && system.routing?.skipAuth === true
  ? { key: 'guest', kind: 'guest', user: 'guest', username: 'guest', isAdmin: true }
  : undefined
