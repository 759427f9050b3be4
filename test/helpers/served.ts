import { connected, settings, type Json } from './client.ts'
import { startHub, type Cleanup, type Hub, type HubOptions } from './hub.ts'

/** A gateway within this process, with these servers, all of them connected. @param more of its settings */
export async function served (t: Cleanup, mcpServers: Json, more: Json = {}, options: Omit<HubOptions, 'settings'> = {}): Promise<Hub> {
  const hub = await startHub(t, { settings: settings(mcpServers, more), ...options })
  await connected(hub, Object.keys(mcpServers).length)
  return hub
}
