CREATE TABLE "activity_hours" (
	"hour" bigint NOT NULL,
	"hash" text NOT NULL,
	"server" text NOT NULL,
	"tool" text NOT NULL,
	"status" text NOT NULL,
	"group" text,
	"username" text,
	"key_id" text,
	"key_name" text,
	"calls" bigint NOT NULL,
	"duration" double precision NOT NULL,
	CONSTRAINT "activity_hours_hour_hash_pk" PRIMARY KEY("hour","hash")
);
--> statement-breakpoint
CREATE TABLE "audit" (
	"number" bigserial PRIMARY KEY NOT NULL,
	"id" uuid NOT NULL,
	"timestamp" bigint NOT NULL,
	"username" text NOT NULL,
	"action" text NOT NULL,
	"entity" text NOT NULL,
	"name" text NOT NULL,
	"before" text,
	"after" text,
	CONSTRAINT "audit_id_unique" UNIQUE("id")
);
--> statement-breakpoint
DROP INDEX "activities_username";--> statement-breakpoint
CREATE INDEX "audit_username" ON "audit" USING btree ("username","number");--> statement-breakpoint
CREATE INDEX "audit_entity" ON "audit" USING btree ("entity","number");--> statement-breakpoint
CREATE INDEX "activities_server" ON "activities" USING btree ("server","timestamp","id");--> statement-breakpoint
CREATE INDEX "activities_tool" ON "activities" USING btree ("tool","timestamp","id");--> statement-breakpoint
CREATE INDEX "activities_errors" ON "activities" USING btree ("timestamp","id") WHERE "activities"."status" = 'error';--> statement-breakpoint
CREATE INDEX "activities_group" ON "activities" USING btree ("group","timestamp","id") WHERE "activities"."group" is not null;--> statement-breakpoint
CREATE INDEX "activities_key" ON "activities" USING btree ("key_id","timestamp","id") WHERE "activities"."key_id" is not null;--> statement-breakpoint
CREATE INDEX "activities_key_name" ON "activities" USING btree ("key_name","timestamp","id") WHERE "activities"."key_name" is not null;--> statement-breakpoint
CREATE INDEX "activities_username" ON "activities" USING btree ("username","timestamp","id");