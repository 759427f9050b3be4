// `tool-hub db migrate|import|export`, in a clone also `npm run db:…`: the operator's
// commands for a database, configured by the same environment as the gateway.
import { writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { withoutTokens } from '../db/json/tokens.ts'
import { replace } from '../db/json/write.ts'
import { documentText } from '../db/document-text.ts'
import type { Driver } from '../db/postgres/connection/driver.ts'
import { openDatabase } from '../db/postgres/open.ts'
import { exportDocument, importDocument } from '../db/postgres/settings/transfer.ts'
import { readSettings } from '../db/seed.ts'
import type { Vault } from '../db/store.ts'
import { readEnvironment } from '../plugins/config/environment.ts'
import { openVault } from '../plugins/secrets/vault.ts'
import { main, print, result } from './backup/places.ts'
import { exits, Failure } from './failure.ts'
import { milliseconds, type Env } from '../schemas/env.ts'

const usage = `db migrate                        creates or updates the tables
db import [file] [--replace]      stores a settings file in an empty database; --replace: replaces existing settings
db export [file|-] [--force]      writes the settings to a file, with secrets in plain text; --force: overwrites an existing file;
                     [--masked]   even if secrets cannot be opened: with masks in their places, which db import does not accept

The default for the file is SETTINGS_PATH. DB_URL names the database; ENCRYPTION_KEY or DATA_DIR has the key, as for the gateway.
In a clone, options follow two dashes: npm run db:import -- --replace`

async function run (args: string[]): Promise<void> {
  const {
    positionals: [command, file, ...more],
    values
  } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      replace: { type: 'boolean', default: false },
      force: { type: 'boolean', default: false },
      masked: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false }
    }
  })
  const work = {
    migrate: async () => {
      result({ migrated: true }, 'The tables are up to date.')
    },
    import: importFile,
    export: exportFile
  }[command ?? '']
  if (work === undefined || more.length > 0) throw new Failure(usage, exits.usage)
  const env = readEnvironment(process.env)
  if (env.DB_URL === undefined) {
    throw new Error('DB_URL is not set: it names the database. Without it, the gateway keeps its settings in a file.')
  }
  const driver = await openDatabase({
    dbUrl: env.DB_URL,
    startupTimeout: milliseconds(env.DB_STARTUP_TIMEOUT),
    info: print,
    warn: print,
    isExisting: work === exportFile
  })
  try {
    await work({ driver, vault: await vaultOf(env), path: file === '-' ? '-' : resolve(file ?? env.SETTINGS_PATH), ...values })
  } finally {
    await driver.end()
  }
}

interface Task { driver: Driver, vault: Vault, path: string, replace: boolean, force: boolean, masked: boolean }

/** Opens the gateway's vault, so that each of both can open what the other has sealed. */
const vaultOf = async ({ SETTINGS_PATH, DATA_DIR, ENCRYPTION_KEY }: Env): Promise<Vault> =>
  await openVault({
    dataDir: DATA_DIR === undefined ? join(dirname(resolve(SETTINGS_PATH)), '.tool-hub') : resolve(DATA_DIR),
    encryptionKey: ENCRYPTION_KEY
  })

async function importFile ({ driver, vault, path, replace }: Task): Promise<void> {
  const document = await readSettings(path)
  if (document === undefined) throw new Error(`The settings file ${path} does not exist.`)
  await importDocument(driver, vault, withoutTokens(document), replace)
  result({ file: path, location: driver.location }, `${path} is stored in the database at ${driver.location}.`)
}

async function exportFile ({ driver, vault, path, force, masked }: Task): Promise<void> {
  const exported = await exportDocument(driver, vault)
  if (exported === undefined) throw new Error(`The database at ${driver.location} is empty: nothing was ever stored there.`)
  const { document, locked } = exported
  if (locked.length > 0 && !masked) {
    throw new Error(
      `${locked.join('\n')}\nNothing was written. With --masked, all is written, with masks (••••) in place of these secrets.`
    )
  }
  for (const each of locked) print(each)
  const text = documentText(document)
  if (path === '-') {
    await new Promise<void>((resolve, reject) => { process.stdout.write(text, (error) => { if (error) reject(error); else resolve() }) })
    return
  }
  await (force ? replace(path, Buffer.from(text)) : writeFile(path, text, { flag: 'wx', mode: 0o600, flush: true })).catch(
    (error: unknown) => {
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
      throw new Error(
        code === 'EEXIST'
          ? `${path} exists already, and was left as it is. Name another file, or use --force.`
          : `${path} cannot be written (${code}).`
      )
    }
  )
  const secrets = locked.length === 0
    ? 'holds secrets in plain text'
    : 'holds masks (••••) in place of the secrets that cannot be opened, and others in plain text'
  result(
    { file: path, location: driver.location },
    `The database at ${driver.location} was exported to ${path}. The file ${secrets}: only its owner may read it.`
  )
}

// Messages go to stderr, since stdout may be the export.
main(async () => { await run(process.argv.slice(2)) })
