// `npm run db:migrate|db:import|db:export`: what an operator does with a database. The environment is that of the gateway.
import { writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { withoutTokens } from '../db/json/tokens.ts'
import { replace } from '../db/json/write.ts'
import type { Driver } from '../db/postgres/connection/driver.ts'
import { openDatabase } from '../db/postgres/open.ts'
import { exportDocument, importDocument } from '../db/postgres/settings/transfer.ts'
import { readSettings } from '../db/seed.ts'
import type { Vault } from '../db/store.ts'
import { openVault } from '../plugins/secrets/vault.ts'
import { milliseconds, readEnv, type Env } from '../schemas/env.ts'

const usage = `db:migrate                        makes or renews the tables
db:import [file] [--replace]      stores a settings file in an empty database; --replace: in the place of what is there
db:export [file|-] [--force]      writes what the database holds as a settings file, with secrets in plain; --force: over one that is there;
                     [--masked]   also when secrets cannot be opened: with masks in their place, which db:import does not take

The file is SETTINGS_PATH unless it is given. DB_URL says which database; ENCRYPTION_KEY or DATA_DIR has the key, as for the gateway.
Options go behind two dashes: npm run db:import -- --replace`

/** What goes to a person; stdout may be the export. */
const say = (sentence: string): void => { process.stderr.write(`${sentence}\n`) }

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
      masked: { type: 'boolean', default: false }
    }
  })
  const work = {
    migrate: async () => {
      say('The tables have all that this version needs.')
    },
    import: importFile,
    export: exportFile
  }[command ?? '']
  if (work === undefined || more.length > 0) throw new Error(usage)
  const env = readEnv(process.env)
  if (env.DB_URL === undefined) {
    throw new Error('DB_URL is not set: it says which database. Without one, the gateway keeps its settings in a file.')
  }
  const driver = await openDatabase({ dbUrl: env.DB_URL, startupTimeout: milliseconds(env.DB_STARTUP_TIMEOUT), info: say, warn: say })
  try {
    await work({ driver, vault: await vaultOf(env), path: file === '-' ? '-' : resolve(file ?? env.SETTINGS_PATH), ...values })
  } finally {
    await driver.end()
  }
}

interface Task { driver: Driver, vault: Vault, path: string, replace: boolean, force: boolean, masked: boolean }

/** The same as the gateway's, so that each opens what the other sealed. */
const vaultOf = async ({ SETTINGS_PATH, DATA_DIR, ENCRYPTION_KEY }: Env): Promise<Vault> =>
  await openVault({
    dataDir: DATA_DIR === undefined ? join(dirname(resolve(SETTINGS_PATH)), '.tool-hub') : resolve(DATA_DIR),
    encryptionKey: ENCRYPTION_KEY
  })

async function importFile ({ driver, vault, path, replace }: Task): Promise<void> {
  const document = await readSettings(path)
  if (document === undefined) throw new Error(`There is no settings file ${path}.`)
  await importDocument(driver, vault, withoutTokens(document), replace)
  say(`${path} is stored in the database at ${driver.where}.`)
}

async function exportFile ({ driver, vault, path, force, masked }: Task): Promise<void> {
  const exported = await exportDocument(driver, vault)
  if (exported === undefined) throw new Error(`The database at ${driver.where} is empty: nothing was ever stored there.`)
  const { document, locked } = exported
  if (locked.length > 0 && !masked) {
    throw new Error(
      `${locked.join('\n')}\nNothing was written. With --masked all the rest is, and masks (••••) where these secrets should be.`
    )
  }
  for (const each of locked) say(each)
  const text = `${JSON.stringify(document, null, 2)}\n`
  if (path === '-') {
    await new Promise<void>((resolve, reject) => { process.stdout.write(text, (error) => { if (error) reject(error); else resolve() }) })
    return
  }
  await (force ? replace(path, Buffer.from(text)) : writeFile(path, text, { flag: 'wx', mode: 0o600, flush: true })).catch(
    (error: unknown) => {
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
      throw new Error(
        code === 'EEXIST'
          ? `${path} is there already, and was left as it is. Name another file, or use --force.`
          : `${path} cannot be written (${code}).`
      )
    }
  )
  say(`${path} has what the database at ${driver.where} holds. It holds secrets in plain: only its owner may read it.`)
}

run(process.argv.slice(2)).catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
})
