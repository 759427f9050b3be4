import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Value } from '@sinclair/typebox/value'
import type { FastifyInstance } from 'fastify'
import { buildApp, type AppOptions } from '../../app.ts'
import { CatalogueFiles } from '../../db/json/catalogues.ts'
import { openStorage } from '../../db/open.ts'
import type { Storage, Store } from '../../db/store.ts'
import { Env } from '../../schemas/env.ts'
import type { Cleanup } from './hub.ts'
import './patient.ts'

const noVault = {
  encryptSecrets: <Value>(value: Value) => ({ value, sealed: null }),
  decryptSecrets: <Value>(value: Value) => value,
  findMasks: () => [],
  isSealedWithFormerKey: () => false,
  isLocked: () => false
}

/**
 * The gateway within this process, ready, on a settings file of its own; closed after the test. For what cannot be asked from outside.
 * @param settings undefined: those of the folder
 * @param folder that is there, and stays; none: a new one
 * @param wrap puts faults between the gateway and its storage
 */
export async function appFor (
  t: Cleanup,
  settings: object | undefined,
  env: Partial<Env> = {},
  { store, folder: given, wrap = (opened) => opened, ...more }:
    Partial<AppOptions> & { store?: Store, folder?: string, wrap?: (opened: Storage) => Storage } = {}
): Promise<FastifyInstance> {
  const folder = given ?? await mkdtemp(join(tmpdir(), 'tool-hub-app-'))
  const settingsPath = join(folder, 'mcp_settings.json')
  if (settings !== undefined) await writeFile(settingsPath, JSON.stringify(settings), { mode: 0o600 })
  const storage = wrap(await openStorage({ settingsPath, startupTimeout: 1_000, vault: noVault, warn: () => {}, info: () => {} }))
  const app = await buildApp({
    logger: false,
    storage: store === undefined ? storage : { ...storage, store },
    catalogueCache: new CatalogueFiles(join(folder, 'catalogues')),
    bundles: { root: join(folder, 'bundles'), isShared: false },
    version: '0.0.0',
    env: { ...Value.Default(Env, {}) as Env, INIT_TIMEOUT: '10s', REQUEST_TIMEOUT: '10s', ...env },
    drainTimeout: 100,
    environment: { PATH: process.env.PATH },
    ...more
  })
  t.after(async () => {
    await app.close()
    if (given === undefined) await rm(folder, { recursive: true, force: true })
  })
  await app.ready()
  return app
}
