// Loaded into a command by --import: when the process exits, it writes its CPU time in ms and its peak of RSS in KiB to the file USAGE.
import { writeFileSync } from 'node:fs'

process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  writeFileSync(process.env.USAGE, JSON.stringify({ cpu: (userCPUTime + systemCPUTime) / 1_000, peak: maxRSS }))
})
