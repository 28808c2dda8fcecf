//! Whether two sets of measurements differ by more than chance: Welch's test.

/// The probability that two sets of numbers with the same mean differ by as much as these do; none when one of them has
/// fewer than two.
pub fn p_value(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let moments = |numbers: &[f64]| {
        let (mean, deviation) = super::distribution::mean_and_deviation(numbers);
        (
            mean,
            deviation * deviation / numbers.len() as f64,
            numbers.len() as f64 - 1.0,
        )
    };
    let ((mean_a, error_a, free_a), (mean_b, error_b, free_b)) = (moments(a), moments(b));
    let error = error_a + error_b;
    if error == 0.0 {
        return Some(if mean_a == mean_b { 1.0 } else { 0.0 });
    }
    let t = (mean_a - mean_b) / error.sqrt();
    let freedom = error * error / (error_a * error_a / free_a + error_b * error_b / free_b);
    Some(incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t)))
}

/// The regularised incomplete beta function, by its continued fraction (Lentz's method).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on this side; the other follows by symmetry.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in 1..300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        result *= d * c;
        if (d * c - 1.0).abs() < 1e-12 {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function (Lanczos, g = 7).
fn log_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum = COEFFICIENTS
        .iter()
        .zip(1..)
        .fold(0.999_999_999_999_809_9, |sum, (coefficient, at)| {
            sum + coefficient / (x + f64::from(at))
        });
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_tables() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        // scipy.stats.ttest_ind(a, b, equal_var=False).pvalue
        let p = p_value(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert!(near(p, 0.346_593_507_087_334_16), "{p}");
        let p = p_value(&[10.0, 10.1, 9.9, 10.05], &[11.0, 11.2, 10.9, 11.1]).unwrap();
        assert!((p - 3.2e-5).abs() < 2e-5, "{p}");
        assert_eq!(p_value(&[1.0], &[2.0, 3.0]), None);
        assert_eq!(p_value(&[1.0, 1.0], &[1.0, 1.0]), Some(1.0));
        assert_eq!(p_value(&[1.0, 1.0], &[2.0, 2.0]), Some(0.0));
        // Student's t of 1 with 1 degree of freedom is a quarter of the circle on each side.
        assert!(near(incomplete_beta(0.5, 0.5, 0.5), 0.5));
        assert!(near(log_gamma(5.0), 24f64.ln()) && near(log_gamma(0.5), std::f64::consts::PI.sqrt().ln()));
    }
}
