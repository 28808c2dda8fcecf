//! `diff` as people run it, and on real files of other tools.

use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use tracesmith_skip::data;

use crate::support::tracesmith;

/// The same model on two GPUs, by PyTorch's profiler.
fn two_gpus() -> Option<(String, String)> {
    let file = |gpu: &str| {
        let name = format!("kineto/{gpu}_gaunernst_bert-small-uncased__1016001.json.gz");
        data(&name).map(|path| path.display().to_string())
    };
    file("h100").zip(file("mi300"))
}

fn diff(before: &str, after: &str, options: &[&str]) -> Value {
    let arguments = ["diff", before, after, "--format", "json"];
    let text = tracesmith(arguments.iter().chain(options)).ok();
    serde_json::from_str(&text).unwrap()
}

fn rows<'r>(report: &'r Value, table: &str) -> &'r Vec<Value> {
    report[table].as_array().unwrap()
}

#[test]
fn a_table_shows_runs_first_and_short_names() {
    let Some((before, after)) = two_gpus() else { return };
    let shown = tracesmith(["diff", &before, &after, "-n", "0"]).ok();
    let places: Vec<Option<usize>> = [
        "Runs\n",
        "\nGPU    ",
        "\nTimes of the whole traces",
        "\nGPU idle time by cause\n",
        "\nCopies\n",
        "\nPeak device memory\n",
        "\nKernels\n",
    ]
    .iter()
    .map(|part| shown.find(part))
    .collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?} {shown}"
    );
    let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest < 220, "{longest} {shown}");
    assert!(!shown.contains("noise"), "{shown}");
    let same = tracesmith(["diff", &before, &before]).ok();
    assert!(same.starts_with("The runs have the same GPU, versions"), "{same}");
    assert!(
        !same.contains("Kernels") && !same.contains("not certain"),
        "{same}"
    );
    // The full names are for programs.
    let csv = tracesmith(["diff", &before, &after, "--format", "csv"]).ok();
    assert!(
        csv.contains("void at::native::reduce_kernel<") && csv.contains(",renamed,"),
        "{csv}"
    );
}

#[test]
fn short_names_are_rows_of_their_own() {
    let Some((before, after)) = two_gpus() else { return };
    let (full, short) = (
        diff(&before, &after, &[]),
        diff(&before, &after, &["--by", "short"]),
    );
    assert_eq!((&full["by"], &short["by"]), (&"name".into(), &"short".into()));
    assert!(rows(&short, "kernels").len() < rows(&full, "kernels").len());
    let is_short = |row: &Value| !row["name"].as_str().unwrap().contains('<');
    assert!(rows(&short, "kernels").iter().all(is_short), "{short}");
    let total = |report: &Value| -> f64 {
        let times = rows(report, "kernels")
            .iter()
            .map(|row| row["b_ns"].as_f64().unwrap());
        times.sum()
    };
    assert!((total(&full) - total(&short)).abs() < 1.0);
}

/// Real pairs: of two ranks, of two GPUs, of a file and its changed copy.
#[test]
fn real_pairs_are_compared_in_both_directions() {
    let pairs = [
        ("nccl-h200/ddp/rank0.json.gz", "nccl-h200/ddp/rank2.json.gz"),
        (
            "kineto/h100_gaunernst_bert-small-uncased__1016001.json.gz",
            "kineto/mi300_gaunernst_bert-small-uncased__1016001.json.gz",
        ),
        (
            "kineto/trace_compare_base_base.json.gz",
            "kineto/trace_compare_test_test.json.gz",
        ),
        (
            "kineto/timeline_analysis_sampled_rank-0.json.gz",
            "kineto/trace_filter_sampled_rank-1.json.gz",
        ),
        (
            "nsys/nsysai_h100_2gpu_1s.sqlite",
            "nsys/nsysai_mfu_2gpu_before.sqlite",
        ),
    ];
    for (before, after) in pairs {
        let (Some(before), Some(after)) = (data(before), data(after)) else {
            return;
        };
        let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());
        let (there, back) = (diff(before, after, &[]), diff(after, before, &[]));
        for table in ["idle", "copies", "kernels"] {
            assert_eq!(rows(&there, table).len(), rows(&back, table).len(), "{table}");
            let sum = |report: &Value| -> f64 {
                let changes = rows(report, table)
                    .iter()
                    .map(|row| row["change_ns"].as_f64().unwrap());
                changes.sum()
            };
            assert!((sum(&there) + sum(&back)).abs() < 1.0, "{table} of {before}");
            for row in rows(&there, table) {
                for p in ["p", "p_adjusted"] {
                    assert!(row[p].as_f64().is_none_or(|p| (0.0..=1.0).contains(&p)), "{row}");
                }
            }
        }
        let renamed = |report: &Value| {
            let kernels = rows(report, "kernels").iter();
            kernels.filter(|row| row["fate"] == "renamed").count()
        };
        assert_eq!(renamed(&there), renamed(&back), "{before}");
    }
}

#[test]
fn a_real_kernel_with_other_template_arguments_is_renamed() {
    let Some((before, after)) = two_gpus() else { return };
    let report = diff(&before, &after, &[]);
    let gelu = rows(&report, "kernels")
        .iter()
        .find(|row| row["fate"] == "renamed" && row["name"].as_str().unwrap().contains("GeluCUDAKernelImpl"))
        .unwrap();
    // Vectors of 4 on the one GPU, and of 8 on the other.
    let name = |key: &str| gelu[key].as_str().unwrap();
    assert!(name("name").contains("kernel<4, ") && name("renamed_to").contains("kernel<8, "));
    assert_eq!(gelu["count_a"], gelu["count_b"]);
    let whats: Vec<&str> = rows(&report, "runs")
        .iter()
        .map(|row| row["what"].as_str().unwrap())
        .collect();
    assert!(
        whats.contains(&"GPU") && whats.contains(&"hip_runtime_version"),
        "{whats:?}"
    );
}

/// Four ranks of six steps were counted as 24 steps.
#[test]
fn a_real_job_of_four_ranks_has_six_steps() {
    let folder = TempDir::new().unwrap();
    let mut files: Vec<PathBuf> = Vec::new();
    for rank in 0..4 {
        let Some(file) = data(&format!("nccl-h200/ddp/rank{rank}.json.gz")) else {
            return;
        };
        let trace = folder.path().join(format!("rank{rank}.sbt"));
        let arguments = [
            "import".as_ref(),
            file.as_os_str(),
            "-o".as_ref(),
            trace.as_os_str(),
        ];
        tracesmith(arguments).ok();
        files.push(trace);
    }
    let merged = folder.path().join("job.sbt");
    let mut arguments = vec!["merge".into(), "-o".into(), merged.clone().into_os_string()];
    arguments.extend(files.into_iter().map(PathBuf::into_os_string));
    tracesmith(arguments).ok();
    let merged = merged.to_str().unwrap();
    let text = tracesmith(["analyze", merged, "--only", "steps", "--format", "json"]).ok();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (rows(&report, "steps").len(), &report["processes"]),
        (6, &4.into())
    );
    for step in rows(&report, "steps") {
        assert_eq!(step["parts"].as_array().unwrap().len(), 4);
        assert_eq!(step["ops"], 4 * 113);
    }
    let shown = tracesmith(["analyze", merged, "--only", "steps"]).ok();
    assert!(
        shown.starts_with("Steps: 6 of 4 processes, from ranges named ProfilerStep\n"),
        "{shown}"
    );
}

#[test]
fn real_steps_are_found() {
    for (file, line) in [
        (
            "nsys/nsysai_healthy_1pct.sqlite",
            "Steps: 200, from a repeating pattern of 2 GPU operations, starting with at::native::elementwise_add",
        ),
        (
            "kineto/resnet50_num_workers_0_worker0.1623143089861.pt.trace.json.gz",
            "Steps: 6, from ranges named ProfilerStep",
        ),
    ] {
        let Some(file) = data(file) else { return };
        let shown = tracesmith(["analyze", file.to_str().unwrap(), "--only", "steps"]).ok();
        assert!(shown.starts_with(line), "{shown}");
    }
    // One pass of a model with 36 layers, launched as a graph, and 16 layers that FSDP names have no steps.
    let layers = [
        "kineto/inference_sglang_decode_sglang_Qwen3-8B_decode.json.gz",
        "nsys/nsysai_mfu_2gpu_before.sqlite",
    ];
    for file in layers.into_iter().filter_map(data) {
        let shown = tracesmith(["analyze", file.to_str().unwrap(), "--only", "steps"]);
        assert!(!shown.stdout.contains("Steps: "), "{shown:?}");
    }
}
